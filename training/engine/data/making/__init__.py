"""Making examples: from logs, by distillation, from templates (MISSION C5). No torch here."""

"""How much memory a training needs, from the model's configuration alone (MISSION B1, B2). No torch here."""

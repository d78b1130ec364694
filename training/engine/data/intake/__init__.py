"""Reading raw files in the shapes that teams have them in. No torch here."""

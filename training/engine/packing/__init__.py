"""Several rows in one sequence, kept from seeing each other (MISSION D4)."""

"""The monitor's rules, by what they look at."""

"""The report of a submission in the forms that people, CI systems and programs read. Nothing here prints."""

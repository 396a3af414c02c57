"""The ground floor that every room stands on: errors for the person, files that are whole or absent."""

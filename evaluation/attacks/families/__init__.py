"""The families of attacks and controls. Adding one is adding a file here."""

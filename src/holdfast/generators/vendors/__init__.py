"""Models of each kind of provider, one module for each library that has to be there."""

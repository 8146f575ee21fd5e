"""What the front end and an engine replica say to each other, and the front end's side of it."""

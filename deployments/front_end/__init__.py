"""What every HTTP request meets, whatever it asks for."""

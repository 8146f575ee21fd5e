"""What one service of several models that hear and answer is asked."""

"""Who gets in and what they may take: keys, limits, the audit log, deadlines."""

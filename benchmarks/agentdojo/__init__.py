"""AgentDojo, the field's own test of agents that read what strangers wrote, run through the real engine."""

"""Job templates: vetted jobs that people run with arguments of their own, without the right to create pods."""

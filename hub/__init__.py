"""Every call to the Hub: bounded retries, errors that say what to do."""

"""Everything that is heard: events on a time line and their sound; which rows there are is for the recipes to say."""

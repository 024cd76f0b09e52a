"""What sentence vectors are for, each task a function of texts or of ready vectors."""

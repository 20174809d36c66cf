"""Signal: how one call of a model is worded."""

"""Every pattern's own example on local models, held against what the cost model said beforehand."""

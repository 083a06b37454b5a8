"""From where on two means count as different."""

#: Means that agree to so many decimals are ties: they differ by no more than how a sum was rounded.
TIE_DECIMALS = 12

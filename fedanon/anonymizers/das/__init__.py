"""DAS, the thesis's dynamic anonymisation by separatrices."""

"""The classifiers as scikit-learn's and River's users call them."""

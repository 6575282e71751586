"""Classifiers of the centralized figures: all rows in one place, scikit-learn's and xgboost's own estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedanon.errors import UnknownComponentError
from fedanon.types import AnyArray, FloatArray, TargetArray


def fit_predict(
    name: str, train_features: AnyArray, train_target: TargetArray, test_features: AnyArray
) -> tuple[TargetArray, FloatArray | None]:
    """Train one of :data:`CLASSIFIERS` and label the test rows.

    Returns
    -------
    The labels and the probabilities of class 1, or None where the classifier gives none (SVM).
    """
    if name not in CLASSIFIERS:
        raise UnknownComponentError(f"Unknown classifier {name!r}. Known: {', '.join(CLASSIFIERS)}.")
    classifier = CLASSIFIERS[name]()
    classifier.fit(train_features, train_target)
    labels = np.asarray(classifier.predict(test_features), dtype=np.int8)
    if not hasattr(classifier, "predict_proba"):
        return labels, None
    return labels, np.asarray(classifier.predict_proba(test_features)[:, 1], dtype=np.float64)


def _knn() -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(10)


def _random_forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=300, max_depth=10, min_samples_split=5, random_state=10, n_jobs=-1)


def _svm() -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(max_iter=1000, dual=False)


def _xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(
        learning_rate=0.1,
        max_depth=5,
        n_estimators=100,
        colsample_bylevel=0.9,
        colsample_bytree=0.9,
        subsample=0.9,
        reg_lambda=1.5,
        random_state=10,
    )


def _logistic_regression() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


#: by name; the settings are the thesis's (figures 6.7 to 6.10), those of 'lr' scikit-learn's own
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "knn": _knn,
    "rf": _random_forest,
    "svm": _svm,
    "xgb": _xgboost,
    "lr": _logistic_regression,
}

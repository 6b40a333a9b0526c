"""Writes golden.json: what scipy and statsmodels make of some numbers.

Degrees of freedom by Satterthwaite and standard errors by Kenward and Roger are in
neither. Both are computed here, at statsmodels' variances, from whole matrices,
without the decomposition that Fieldmesh uses.
"""

import json
import sys
import warnings

import numpy as np
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

warnings.simplefilter("ignore")  # MixedLM warns of optimisers that it tries before the last one
rng = np.random.default_rng(20261122)


def quantiles():
    out = []
    for df in [1, 2, 3, 4.7, 10, 33.3, 120, 5000]:
        for confidence in [0.8, 0.95, 0.99, 1 - 0.05 / 7]:
            out.append([confidence, df, stats.t.ppf(0.5 + confidence / 2, df)])
    return out


def tails():
    return [[t, df, 2 * stats.t.sf(abs(t), df)] for df in [1, 4.7, 30, 500] for t in [-6.1, -2, 0, 0.3, 1.96, 4]]


def holm():
    out = []
    for n in [1, 2, 5, 12]:
        p = np.round(rng.uniform(size=n) ** 3, 6)
        out.append({"p": p.tolist(), "adjusted": multipletests(p, method="holm")[1].tolist()})
    out.append({"p": [0.01, 0.01, 0.04, 0.03], "adjusted": multipletests([0.01, 0.01, 0.04, 0.03], method="holm")[1].tolist()})
    return out


def welch():
    out = []
    for nx, ny, shift, spread in [(3, 3, 0, 1), (5, 12, 2, 4), (40, 7, -1, 0.2)]:
        x, y = rng.normal(10, 1, nx), rng.normal(10 + shift, spread, ny)
        r = stats.ttest_ind(y, x, equal_var=False)
        low, high = r.confidence_interval(0.95)
        out.append({"x": x.tolist(), "y": y.tolist(), "df": r.df, "p": r.pvalue, "low": low, "high": high})
    return out


def power():
    out = []
    for df in [1, 2, 3, 8, 40, 300]:
        for shift in [0, 0.5, 1.5, 2.8, 6]:
            crit = stats.t.ppf(0.975, df)
            out.append([shift, df, 0.95, stats.nct.sf(crit, df, shift) + stats.nct.cdf(-crit, df, shift)])
    for n in [4, 9, 30]:  # the same by statsmodels: a one-sample test of n values
        p = TTestPower().power(0.6, n, 0.05, df=n - 1)
        out.append([0.6 * np.sqrt(n), n - 1, 0.95, p])
    return out


def design(n, groups, unbalanced):
    """Speed, section, and blocks, with groups of like or unlike sizes."""
    x = np.column_stack([np.ones(n), rng.choice([-0.5, 0.5], n), np.round(rng.uniform(2, 17, n), 1)])
    x[:, 2] -= x[:, 2].mean()
    if unbalanced:
        weights = rng.dirichlet(np.ones(groups))
        g = np.concatenate([np.arange(groups), rng.choice(groups, n - groups, p=weights)])
    else:
        g = np.sort(np.arange(n) % groups)
    between = (g % 2) - 0.5  # differs from group to group only
    return np.column_stack([x, between]), g


def ols():
    out = []
    for n in [6, 24, 240]:
        x, _ = design(n, 3, False)
        x = x[:, :3]
        y = x @ [20, 1, -0.4] + rng.normal(0, 0.8, n)
        r = sm.OLS(y, x).fit()
        ci = r.conf_int(0.05)
        out.append({"x": x.T.tolist(), "y": y.tolist(), "beta": r.params.tolist(), "se": r.bse.tolist(), "p": r.pvalues.tolist(),
                    "low": ci[:, 0].tolist(), "high": ci[:, 1].tolist(), "sd": float(np.sqrt(r.scale)), "df": float(r.df_resid)})
    return out


def satterthwaite(x, z, s2, u2):
    """Standard errors and degrees of freedom at given variances, from whole matrices."""
    n = len(x)

    def v(s2, u2):
        return s2 * np.eye(n) + u2 * z @ z.T

    def cov(s2, u2):
        return np.linalg.inv(x.T @ np.linalg.solve(v(s2, u2), x))

    inverse = np.linalg.inv(v(s2, u2))
    p = inverse - inverse @ x @ cov(s2, u2) @ x.T @ inverse
    parts = [np.eye(n), z @ z.T]
    information = np.array([[0.5 * np.trace(p @ a @ p @ b) for b in parts] for a in parts])
    uncertainty = np.linalg.inv(information)
    out = []
    for j in range(x.shape[1]):
        h = 1e-5 * s2
        gradient = np.array([(cov(s2 + h, u2)[j, j] - cov(s2 - h, u2)[j, j]) / (2 * h),
                             (cov(s2, u2 + h)[j, j] - cov(s2, u2 - h)[j, j]) / (2 * h)])
        out.append(min(n - x.shape[1], 2 * cov(s2, u2)[j, j] ** 2 / (gradient @ uncertainty @ gradient)))
    phi, more = cov(s2, u2), 0
    for i, a in enumerate(parts):  # Kenward and Roger 1997, with variances that are linear in the parameters
        for j, b in enumerate(parts):
            q = x.T @ inverse @ a @ inverse @ b @ inverse @ x
            more = more + uncertainty[i, j] * (q - (x.T @ inverse @ a @ inverse @ x) @ phi @ (x.T @ inverse @ b @ inverse @ x))
    return np.sqrt(np.diag(phi + 2 * phi @ more @ phi)).tolist(), out


def mixed():
    out = []
    for n, groups, unbalanced, spread in [(48, 8, False, 1.5), (60, 10, True, 0.7), (40, 12, True, 3), (240, 20, False, 0.4), (36, 9, False, 0)]:
        x, g = design(n, groups, unbalanced)
        z = (g[:, None] == np.arange(groups)[None, :]).astype(float)
        y = x @ [20, 1, -0.4, 0.5] + z @ rng.normal(0, spread, groups) + rng.normal(0, 0.8, n)
        r = sm.MixedLM(y, x, groups=g).fit(reml=True, method=["bfgs", "lbfgs", "cg"], gtol=1e-12)
        u2 = float(np.asarray(r.cov_re)[0, 0])
        se, df = satterthwaite(x, z, float(r.scale), u2)
        out.append({"x": x.T.tolist(), "y": y.tolist(), "groups": [str(i) for i in g], "beta": r.fe_params.tolist(), "se": se,
                    "s2": float(r.scale), "u2": u2, "df": df})
    return out


def apart():
    """Least squares where groups are too many or too few for a spread of their own."""
    out = []

    def add(how, x, y, g, r, df):
        out.append({"how": how, "x": x.T.tolist(), "y": y.tolist(), "groups": [str(i) for i in g],
                    "beta": r.params.tolist(), "se": r.bse.tolist(), "df": df})

    for n in [12, 16]:  # a group for each row: statsmodels' OLS, which knows of none
        x, _ = design(n, 3, False)
        y = x @ [20, 1, -0.4, 0.5] + rng.normal(0, 0.8, n)
        add("noise", x, y, range(n), sm.OLS(y, x).fit(), n - 4)
    for size in [6, 9]:  # four groups of one size: the OLS of their means, for what differs between them only
        g = np.repeat(np.arange(4), size)
        within = np.tile(np.linspace(-1, 1, size), 4)
        x = np.column_stack([np.ones(4 * size), (g % 2) - 0.5, within])
        y = x @ [20, 1, -0.4] + rng.normal(0, 2, 4)[g] + rng.normal(0, 0.8, 4 * size)
        means = np.array([y[g == i].mean() for i in range(4)])
        add("between", x[:, :2], y, g, sm.OLS(means, np.column_stack([np.ones(4), (np.arange(4) % 2) - 0.5])).fit(), 2)
        out[-1]["x"] = x.T.tolist()
    return out


golden = {"quantiles": quantiles(), "tails": tails(), "holm": holm(), "welch": welch(), "power": power(), "ols": ols(), "mixed": mixed(),
          "apart": apart()}
json.dump(golden, sys.stdout, indent=None, separators=(",", ":"), default=float)
sys.stdout.write("\n")

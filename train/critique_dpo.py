"""Train a judge to prefer critiques that lead to the right label (DPO, by TRL).

python train/critique_dpo.py [--config RECIPE] [key.path=value ...]

:mod:`train.methods.dpo` says how. It runs in one process.
"""

from train.run import EntryPoint

main = EntryPoint("dpo")

if __name__ == "__main__":
    main()

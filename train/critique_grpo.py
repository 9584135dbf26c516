"""Train a judge on rewards of critiques that it draws itself (GRPO, by TRL).

python train/critique_grpo.py [--config RECIPE] [key.path=value ...]

:mod:`train.methods.grpo` says how. It runs in one process.
"""

from train.run import EntryPoint

main = EntryPoint("grpo")

if __name__ == "__main__":
    main()

"""Train a judge on rewards of critiques that it draws itself (GRPO, by TRL).

python train/critique_grpo.py [--config RECIPE] [key.path=value ...]

At every step the judge draws several critiques of each pair. Each is worth the log-probability that
its label tree gives the right label after it, the mean over both orders of the pair, less a penalty
if the orders lead to different labels. Rows need labels and no critiques, and have no pictures. It
runs in one process.
"""

from train.run import EntryPoint

main = EntryPoint("grpo")

if __name__ == "__main__":
    main()

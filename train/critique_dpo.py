"""Train a judge to prefer critiques that lead to the right label (DPO, by TRL).

python train/critique_dpo.py [--config RECIPE] [key.path=value ...]

The judge that the run starts from draws several critiques of every pair. They are ranked by the
log-probability that its label tree gives the right label after each, in both orders of the pair;
the best and the worst are a preference. Rows need labels and no critiques. It runs in one process.
"""

from train.run import EntryPoint

main = EntryPoint("dpo")

if __name__ == "__main__":
    main()

"""Train a scalar reward of single responses on pairs (the Bradley-Terry paradigm).

accelerate launch train/bradley_terry.py [--config RECIPE] [key.path=value ...]

The rows are those of task ``truthful-pair``. A tie is half a win for each side.
"""

from train.run import EntryPoint

main = EntryPoint("reward")

if __name__ == "__main__":
    main()

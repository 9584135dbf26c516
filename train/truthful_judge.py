"""Train a judge of pairs that writes a critique before its label (TruthfulJudge, section 5).

accelerate launch train/truthful_judge.py [--config RECIPE] [key.path=value ...]

The task of the rows decides the paradigm: ``truthful-pair`` (critique, label, confidence),
``truthful-pure-label`` or ``truthful-critique-score``.
"""

from train.run import EntryPoint

main = EntryPoint("critique")

if __name__ == "__main__":
    main()

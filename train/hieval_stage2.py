"""Train HiEval-EA, the error-analysis judge: replay and contrastive unlikelihood.

accelerate launch train/hieval_stage2.py [--config RECIPE] [key.path=value ...]

Training starts from the stage-1 adapter that ``adapter.init`` names.
"""

from train.run import EntryPoint

main = EntryPoint("joint")

if __name__ == "__main__":
    main()

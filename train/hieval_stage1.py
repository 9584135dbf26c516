"""Train HiEval-QS, the quick-score judge: LoRA and square-root class-balanced focal loss.

accelerate launch train/hieval_stage1.py [--config RECIPE] [key.path=value ...]
"""

from train.run import EntryPoint

main = EntryPoint("focal")

if __name__ == "__main__":
    main()

//! What a live path counts, holds and lets go of, with no plugin and no cluster.

;; Built against an `outcome` without a verdict under today's version: `abi-unsupported`.
;; wit: verdict: option<verdict>, =>

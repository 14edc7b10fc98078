;; Built against 0.0.9, which this host does not know: `abi-unsupported`.
;; wit: package portent:classifier@0.1.0; => package portent:classifier@0.0.9;

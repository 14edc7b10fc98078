;; Built against 0.2.0, which this host does not know: `abi-unsupported`.
;; wit: package portent:classifier@0.1.0; => package portent:classifier@0.2.0;

# Exit 0 accepts the artifact; anything else refuses it, with what is printed.
grep -q '^hello, .' "$HOLDFAST_ARTIFACT" || { echo "it greets nobody"; exit 1; }

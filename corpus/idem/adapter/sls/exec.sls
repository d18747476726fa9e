ping:
  exec.run:
  - path: test.ping
after:
  work.run:
  - path: $DIR/log
  - require:
    - exec: ping

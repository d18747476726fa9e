# Credentials by the name of a profile.
usual:
  login.run:
  - path: $DIR/log
named:
  login.run:
  - path: $DIR/log
  - acct_profile: other
  - require:
    - login: usual

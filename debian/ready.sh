#!/bin/sh
# The health check of a container: succeeds if the service is ready.
exec /usr/lib/freehold/node_modules/.bin/node -e "
  fetch('http://127.0.0.1:' + (process.env.INTERNAL_PORT || 3001) + '/readyz').then(
    ({ ok }) => process.exit(ok ? 0 : 1),
    () => process.exit(1),
  )"

/** `npm run build`: install and build when needed, and nothing else. */

import { bootstrap } from './lib/bootstrap.mjs';

await bootstrap();

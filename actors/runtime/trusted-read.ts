/**
 * Reads of who decides by rows instead of keeping them: as they were committed last. Nothing is read
 * while the units of a writer that died are unsettled, since what became of them is not known.
 */

import { DATABASE_AWAY } from '../../src/base/errors.js';
import type { HostDeps } from './host.js';

/** @throws EngineError 503 when the rows cannot be read */
export function readTrusted<T>(
  { whenWriterKnown }: Pick<HostDeps, 'whenWriterKnown'>,
  read: () => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    whenWriterKnown(() => read().then(resolve, () => reject(DATABASE_AWAY)));
  });
}

/**
 * How much is tried by the tests that try many cases. `npm test` takes a share that finds nearly all
 * mistakes in minutes; `npm run test:deep`, which sets TEST_DEPTH, takes the long forms.
 */

const { TEST_DEPTH = 'normal' } = process.env;
if (TEST_DEPTH !== 'normal' && TEST_DEPTH !== 'deep') {
  throw new Error(`TEST_DEPTH is normal or deep, not ${TEST_DEPTH}`);
}

export const isDeep = TEST_DEPTH === 'deep';

/** The one of the two that the depth asks for. */
export function byDepth<T>(normal: T, deep: T): T {
  return isDeep ? deep : normal;
}

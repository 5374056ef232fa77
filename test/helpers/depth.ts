/**
 * How much is tried by the tests that try many cases: the runner sets TEST_TIER. `npm test` takes a share that
 * finds nearly all mistakes in minutes, `npm run test:full` the whole, and `npm run test:deep` the long forms.
 */

const { TEST_TIER = 'fast' } = process.env;
if (!['fast', 'full', 'deep'].includes(TEST_TIER)) {
  throw new Error(`TEST_TIER is fast, full or deep, not ${TEST_TIER}`);
}

export const isDeep = TEST_TIER === 'deep';

/** The share of the cases of properties that is tried. */
export const CASES_SHARE = TEST_TIER === 'fast' ? 0.2 : 1;

/** The one that the tier asks for. */
export const byTier = <T>(of: { readonly fast: T; readonly full: T; readonly deep: T }): T =>
  of[TEST_TIER as keyof typeof of];

/** The one of the two that the depth asks for. */
export const byDepth = <T>(normal: T, deep: T): T => (isDeep ? deep : normal);

/** Large components that the first paint does not need, loaded when first shown. */

import { type ComponentProps, Suspense } from 'react';
import { later } from '../lib/load.ts';
import styles from './loaded.module.css';

const LazyChart = later(() => import('./chart.tsx'));
const LazyEditor = later(() => import('./editor.tsx'));
const LazyTextDiff = later(() => import('./text-diff.tsx'));

export function Chart(props: ComponentProps<typeof LazyChart>) {
  return (
    <Suspense fallback={<Place height={(props.height ?? 180) + 30} />}>
      <LazyChart {...props} />
    </Suspense>
  );
}

/** JSON editor that marks errors where they are. */
export function Editor(props: ComponentProps<typeof LazyEditor>) {
  return (
    <Suspense fallback={<Place height={320} />}>
      <LazyEditor {...props} />
    </Suspense>
  );
}

/** Two texts with their differences marked. */
export function TextDiff(props: ComponentProps<typeof LazyTextDiff>) {
  return (
    <Suspense fallback={<Place height={320} />}>
      <LazyTextDiff {...props} />
    </Suspense>
  );
}

export function Place({ height }: { readonly height: number }) {
  return <div className={styles.place} style={{ minHeight: height }} aria-busy />;
}

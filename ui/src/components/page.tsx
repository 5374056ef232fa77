/** The layout of every page: header, panels, facts and tabs. */

import { type ReactNode, useEffect, useId, useRef } from 'react';
import { Link, useParams } from 'wouter';
import styles from './page.module.css';
import { type TabMark, useTabMark } from './tab-mark.ts';

interface PageProps {
  readonly title: string;
  /** The title of the browser tab, where it says more than that of the page. */
  readonly tabTitle?: string;
  /** On the icon of the browser tab. */
  readonly mark?: TabMark | undefined;
  /** Breadcrumbs above the title. */
  readonly trail?: readonly { readonly href: string; readonly label: string }[];
  /** Beside the title, such as the state. */
  readonly beside?: ReactNode;
  /** A line below the title. */
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** The title receives the focus when a link has led to the page. */
export function Page(props: PageProps) {
  const { title, tabTitle = title, mark, trail, beside, about, actions, children } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${tabTitle} · Durable workflow engine`;
  }, [tabTitle]);
  useTabMark(mark);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, []);
  return (
    <div className={styles.page}>
      <div className={styles.head}>
        <div className={styles.title}>
          {trail && (
            <nav className={styles.trail} aria-label="Breadcrumb">
              {trail.map(({ href, label }) => (
                <span key={href}>
                  <Link href={href}>{label}</Link> /
                </span>
              ))}
            </nav>
          )}
          <h1 ref={heading} tabIndex={-1}>
            {title} {beside}
          </h1>
          {about && <p className="dim">{about}</p>}
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </div>
      {children}
    </div>
  );
}

export function Panel(props: {
  readonly title: string;
  readonly actions?: ReactNode;
  /** The content reaches to the panel's edge, for lists and diagrams. */
  readonly isFlush?: boolean;
  readonly children: ReactNode;
}) {
  const titleId = useId();
  return (
    <section className={styles.panel} aria-labelledby={titleId}>
      <div className={styles.panelHead}>
        <h2 id={titleId}>{props.title}</h2>
        {props.actions}
      </div>
      <div className={props.isFlush ? styles.flush : styles.panelBody}>{props.children}</div>
    </section>
  );
}

/** Values by their names; without those that are undefined or false. */
export type FactValues = Readonly<Record<string, ReactNode>>;

/** Names and values, side by side where there is room. */
export function Facts({ facts }: { readonly facts: FactValues }) {
  const shown = Object.entries(facts).filter(([, value]) => value !== undefined && value !== false);
  return (
    <dl className={styles.facts}>
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export type Tab<Part> = readonly [name: string, label: string, part: Part];

/**
 * Tabs of a page, each with its own address.
 *
 * @param base address of the page; the name of a tab follows, but for the first
 * @returns the tabs, and the part that the address names
 */
export function useTabs<Part>(
  label: string,
  base: string,
  tabs: readonly Tab<Part>[],
): readonly [tabs: ReactNode, part: Part] {
  const { tab = '' } = useParams();
  const current = tabs.find(([name]) => name === tab) ?? (tabs[0] as Tab<Part>);
  return [
    <nav key="tabs" className={styles.tabs} aria-label={label}>
      {tabs.map((one) => (
        <Link
          key={one[0]}
          href={one[0] === '' ? base : `${base}/${one[0]}`}
          className={styles.tab}
          aria-current={one === current ? 'page' : undefined}
        >
          {one[1]}
        </Link>
      ))}
    </nav>,
    current[2],
  ];
}

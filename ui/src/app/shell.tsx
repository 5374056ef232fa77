/** The frame around every page: navigation, tenant, theme and connection state. */

import { LogOut, Menu, Monitor, Moon, Sun } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { isWithin } from '../api/access.ts';
import { useEngine, useInfo, useMaySee } from '../api/engine.tsx';
import { type LiveState, useLiveState } from '../api/live.tsx';
import { Badge, type Tone } from '../components/badge.tsx';
import { Button, IconButton } from '../components/button.tsx';
import { textColorOn } from '../lib/contrast.ts';
import { formatClock } from '../lib/format.ts';
import { useAsOf } from '../lib/now.ts';
import { Finder } from './finder.tsx';
import { NAVIGATION } from './navigation.ts';
import { signOut } from './queries.ts';
import styles from './shell.module.css';
import { switchTenant } from './tenant-address.tsx';
import { type Theme, useTheme } from './theme.ts';

const SIDE_ID = 'navigation';

export function Shell({ children }: { children: ReactNode }) {
  const live = useLiveState();
  return (
    <div className={styles.shell}>
      <button type="button" className={styles.skip} onClick={skipToContent}>
        Skip to content
      </button>
      <Side />
      <div className={styles.main}>
        <Bar live={live} />
        <main id="content" tabIndex={-1} className={styles.content}>
          {children}
        </main>
      </div>
    </div>
  );
}

/** Done by script, since a fragment would be resolved against the base URL of the document. */
function skipToContent() {
  document.getElementById('content')?.focus();
}

function Side() {
  const maySee = useMaySee();
  const isInCluster = useInfo()?.cluster === true;
  const [location] = useLocation();
  const side = useRef<HTMLElement>(null);
  const isNarrow = useMedia('(width < 900px)');
  // biome-ignore lint/correctness/useExhaustiveDependencies: following a link closes it
  useEffect(() => {
    if (side.current?.matches(':popover-open')) side.current.hidePopover();
  }, [location]);
  return (
    <nav
      ref={side}
      id={SIDE_ID}
      className={styles.side}
      aria-label="Main"
      popover={isNarrow ? 'auto' : undefined}
    >
      <Link href="/" className={styles.brand}>
        <img src={`${document.baseURI}icon.svg`} width={26} height={26} alt="" />
        Durable workflow engine
      </Link>
      {NAVIGATION.map((group) => {
        const items = group.items.filter(
          ({ href, isOfCluster }) => maySee(href) && (isInCluster || !isOfCluster),
        );
        if (items.length === 0) return null;
        return (
          <div key={group.label} className={styles.group}>
            <h2>{group.label}</h2>
            <ul>
              {items.map(({ href, label, icon: Icon }) => (
                <li key={href}>
                  <Link
                    href={href}
                    className={styles.item}
                    aria-current={isWithin(location, href) ? 'page' : undefined}
                  >
                    <Icon size={17} aria-hidden />
                    {label}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        );
      })}
    </nav>
  );
}

const LIVE: Record<LiveState, readonly [tone: Tone, word: string]> = {
  connecting: ['idle', 'Connecting'],
  live: ['ok', 'Live'],
  lost: ['warn', 'Engine unavailable'],
  paced: ['idle', 'Every 5 s'],
};

function Bar({ live }: { live: LiveState }) {
  const { tenant, who } = useEngine();
  const [tone, word] = LIVE[live];
  return (
    <>
      <header className={styles.bar}>
        <span className={styles.opener}>
          <IconButton label="Navigation" icon={Menu} size={18} popoverTarget={SIDE_ID} />
        </span>
        <EnvironmentLabel />
        {tenant === undefined ? (
          <strong className={styles.tenant}>All tenants</strong>
        ) : (
          <span className={styles.tenant} title={tenant}>
            <span className={`${styles.tenantWord} dim small`}>Tenant </span>
            <strong>{tenant}</strong>
          </span>
        )}
        {who.is_root && (
          <Button kind="quiet" onClick={switchTenant}>
            Change
          </Button>
        )}
        <span className={styles.space} />
        <Finder />
        <span role="status">
          <Badge tone={tone}>{word}</Badge>
        </span>
        <ThemeButton />
        {!who.is_insecure && <IconButton label="Sign out" icon={LogOut} onClick={signOut} />}
      </header>
      {live === 'lost' && <OutageBanner />}
    </>
  );
}

function OutageBanner() {
  const at = useAsOf();
  const asOf = at === undefined ? 'out of date' : `as of ${formatClock(new Date(at), Date.now())}`;
  return (
    <p className={styles.away} role="alert">
      The engine is unreachable. Data shown is {asOf}; the page updates when it is back.
    </p>
  );
}

/** Tells engines apart: the operator configures the name and colour of the environment. */
function EnvironmentLabel() {
  const info = useInfo();
  if (info == null || info.env_label === null) return null;
  const { env_label: label, env_color: color } = info;
  const style = color === null ? {} : { background: color, color: textColorOn(color) };
  return (
    <span className={styles.environment} style={style} title="The environment of this engine">
      {label}
    </span>
  );
}

const THEME_ICONS: Record<Theme, typeof Sun> = { system: Monitor, light: Sun, dark: Moon };

function ThemeButton() {
  const [theme, next] = useTheme();
  const Icon = THEME_ICONS[theme];
  return <IconButton label={`Theme: ${theme}`} icon={Icon} onClick={next} />;
}

function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const update = () => setMatches(media.matches);
    media.addEventListener('change', update);
    return () => media.removeEventListener('change', update);
  }, [query]);
  return matches;
}

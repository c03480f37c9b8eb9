//! What the terminal shows.

use super::state::{HostOrder, JobOrder, TopPanel, TopState, alike, blocked, ranges, span, word};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Row, Table, TableState};
use weft_requests::{JobView, MemberView};

/// Cells of a bar.
const BAR: usize = 10;
const KEYS: &str = "q quit  Tab panel  arrows choose  s sort  k end job  K kill job  d drain host";

pub fn draw(frame: &mut Frame<'_>, state: &TopState) {
    let area = frame.area();
    if !state.is_heard {
        frame.render_widget(Line::from("the daemon is asked ..."), area);
        return;
    }
    // Hosts take what is left; the rest has what it needs, within bounds.
    let jobs = (state.view.jobs.len() as u16 + 3).min(area.height / 4).max(4);
    let small = (state.view.partitions.len().max(state.view.queue.len()) as u16 + 3).min(area.height / 5).max(4);
    let ranks = (area.height / 5).max(4);
    let rows = [1, 1].map(Constraint::Length);
    let rest = [Constraint::Min(5), Constraint::Length(small), Constraint::Length(jobs), Constraint::Length(ranks)];
    let rows = [&rows[..], &rest, &[Constraint::Length(1)]].concat();
    let areas = Layout::vertical(rows).split(area);
    frame.render_widget(title(state), areas[0]);
    frame.render_widget(totals(state), areas[1]);
    hosts(frame, areas[2], state);
    let halves = Layout::horizontal([Constraint::Percentage(38), Constraint::Percentage(62)]).split(areas[3]);
    partitions(frame, halves[0], state);
    queue(frame, halves[1], state);
    jobs_table(frame, areas[4], state);
    ranks_of(frame, areas[5], state);
    frame.render_widget(bottom(state), areas[6]);
}

fn quiet() -> Style {
    Style::new().fg(Color::DarkGray)
}

fn title(state: &TopState) -> Line<'_> {
    let view = &state.view;
    let server = view.server.as_deref().unwrap_or("nobody now");
    let about = format!("  version {}, jobs are ordered by {server}", view.version);
    Line::from(vec![
        Span::styled(&*view.cluster, Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(about, quiet()),
    ])
}

fn totals(state: &TopState) -> Line<'_> {
    let view = &state.view;
    let alive = view.members.iter().filter(|member| ["alive", "drained"].contains(&word(member))).count();
    let (used, slots) =
        view.members.iter().fold((0, 0), |(used, slots), member| (used + member.used, slots + member.slots));
    let loads = view.members.iter().filter_map(|member| member.load.as_ref());
    let (load, cores) = loads.fold((0.0, 0), |(load, cores), of| (load + of.load, cores + of.cores));
    let counts = format!("{} jobs, {} wait", view.jobs.len(), view.queue.len());
    let hosts = view.members.len();
    Line::from(format!("{alive}/{hosts} hosts   {used}/{slots} slots   load {load:.1} on {cores} cores   {counts}"))
}

fn panel(title: String, is_chosen: bool) -> Block<'static> {
    let style = if is_chosen { Style::new().fg(Color::Cyan) } else { quiet() };
    Block::new()
        .borders(Borders::TOP)
        .border_style(style)
        .title(Span::styled(title, style.add_modifier(Modifier::BOLD)))
}

fn table<'a>(rows: Vec<Row<'a>>, heads: &[&'static str], widths: &[Constraint], block: Block<'a>) -> Table<'a> {
    let heads = Row::new(heads.iter().copied().map(Cell::from)).style(quiet());
    Table::new(rows, widths.to_vec())
        .header(heads)
        .block(block)
        .column_spacing(2)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

fn chosen(is_chosen: bool, at: Option<usize>) -> TableState {
    TableState::new().with_selected(at.filter(|_| is_chosen))
}

fn bar(part: f64, whole: f64, color: Color) -> Span<'static> {
    let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
    let full = (share * BAR as f64).round() as usize;
    let color = if whole > 0.0 && part > 1.1 * whole { Color::Red } else { color };
    Span::styled("■".repeat(full) + &"·".repeat(BAR - full), Style::new().fg(color))
}

fn color_of(member: &MemberView) -> Color {
    match word(member) {
        "dead" => Color::Red,
        "alive" => Color::Reset,
        _ => Color::Yellow,
    }
}

fn hosts(frame: &mut Frame<'_>, area: Rect, state: &TopState) {
    let order = match state.host_order {
        HostOrder::Database => "as in the database",
        HostOrder::Load => "by load",
        HostOrder::Used => "by slots in use",
        HostOrder::Trouble => "those with trouble first",
    };
    let row = |member: &MemberView| {
        let said = member.load.as_ref();
        let load = said.map_or_else(String::new, |load| format!("{:.1}/{}", load.load, load.cores));
        let pressure = said.and_then(|load| load.pressure).map_or_else(String::new, |share| format!("{share:.0} %"));
        let free =
            said.map_or_else(String::new, |load| format!("{:.1} GiB", load.free_bytes as f64 / f64::from(1 << 30)));
        let shares = said.map_or((0.0, 0.0), |load| (load.load, load.cores as f64));
        let note = match &member.trouble {
            Some(trouble) => trouble.clone(),
            None if word(member) == "alive" => String::new(),
            None => format!("for {}", span(member.since)),
        };
        Row::new([
            Cell::from(member.name.clone()),
            Cell::from(word(member)).style(Style::new().fg(color_of(member))),
            Cell::from(format!("{}/{}", member.used, member.slots)),
            Cell::from(bar(member.used as f64, member.slots as f64, Color::Blue)),
            Cell::from(load),
            Cell::from(bar(shares.0, shares.1, Color::Green)),
            Cell::from(pressure),
            Cell::from(free),
            Cell::from(note).style(Style::new().fg(Color::Red)),
        ])
    };
    let rows = state.hosts().into_iter().map(row).collect();
    let bar = BAR as u16;
    let widths = [16, 8, 7, bar, 9, bar, 6, 10].map(Constraint::Length);
    let widths = [&widths[..], &[Constraint::Min(10)]].concat();
    let heads = ["host", "", "slots", "", "load", "", "waits", "free", ""];
    let is_chosen = state.panel == TopPanel::Hosts;
    let block = panel(format!("Hosts, {order} "), is_chosen);
    frame.render_stateful_widget(
        table(rows, &heads, &widths, block),
        area,
        &mut chosen(is_chosen, state.place_of_host()),
    );
}

fn partitions(frame: &mut Frame<'_>, area: Rect, state: &TopState) {
    let rows = state.view.partitions.iter().map(|part| {
        let slots = format!("{}/{}", part.used, part.slots);
        let bar = bar(part.used as f64, part.slots as f64, Color::Blue);
        Row::new([Cell::from(part.name.clone()), Cell::from(slots), Cell::from(bar)])
    });
    let widths = [Constraint::Length(16), Constraint::Length(11), Constraint::Min(BAR as u16)];
    frame.render_widget(
        table(rows.collect(), &["partition", "slots", ""], &widths, panel("Partitions ".into(), false)),
        area,
    );
}

fn queue(frame: &mut Frame<'_>, area: Rect, state: &TopState) {
    let rows = state.view.queue.iter().map(|job| {
        let waited = span(state.view.time.saturating_sub(job.since));
        let texts = [job.job.to_string(), job.user.clone(), job.partition.clone(), job.ranks.to_string(), waited];
        Row::new(texts.into_iter().chain([job.reason.clone()]).map(Cell::from))
    });
    let widths = [16, 10, 10, 6, 11].map(Constraint::Length);
    let widths = [&widths[..], &[Constraint::Min(8)]].concat();
    let heads = ["job", "user", "partition", "ranks", "waits", "because"];
    frame.render_widget(table(rows.collect(), &heads, &widths, panel("Queue ".into(), false)), area);
}

fn jobs_table(frame: &mut Frame<'_>, area: Rect, state: &TopState) {
    let order = match state.job_order {
        JobOrder::Time => "the longest first",
        JobOrder::Ranks => "by ranks",
        JobOrder::Blocked => "by blocked ranks",
        JobOrder::User => "by user",
    };
    let row = |job: &JobView| {
        let command = std::iter::once(job.program.rsplit('/').next().unwrap_or_default());
        let command = command.chain(job.arguments.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        let partition = job.partition.clone().unwrap_or_else(|| "-".to_owned());
        let waits = if job.ranks.is_empty() { String::new() } else { blocked(job).to_string() };
        let ran = span(state.view.time.saturating_sub(job.since));
        let numbers = [job.size.to_string(), waits, job.hosts.len().to_string(), ran];
        let words = [job.job.to_string(), job.user.clone(), partition];
        Row::new(words.into_iter().chain(numbers).chain([command]).map(Cell::from))
    };
    let rows = state.jobs().into_iter().map(row).collect();
    let widths = [16, 10, 10, 6, 7, 5, 11].map(Constraint::Length);
    let widths = [&widths[..], &[Constraint::Min(10)]].concat();
    let heads = ["job", "user", "partition", "ranks", "blocked", "hosts", "time", "command"];
    let is_chosen = state.panel == TopPanel::Jobs;
    let block = panel(format!("Jobs, {order} "), is_chosen);
    frame.render_stateful_widget(
        table(rows, &heads, &widths, block),
        area,
        &mut chosen(is_chosen, state.place_of_job()),
    );
}

fn ranks_of(frame: &mut Frame<'_>, area: Rect, state: &TopState) {
    let Some(job) = state.chosen_job() else {
        frame.render_widget(panel("Ranks ".into(), false), area);
        return;
    };
    let groups = alike(&job.ranks);
    let row = |(count, what, seconds, which): (String, String, String, String)| Row::new([count, what, seconds, which]);
    let rows = groups.iter().map(|group| {
        let seconds = format!("{:.1} s", group.seconds);
        row((group.ranks.len().to_string(), group.what.to_owned(), seconds, ranges(&group.ranks)))
    });
    let widths = [Constraint::Length(6), Constraint::Length(42), Constraint::Length(9), Constraint::Min(10)];
    let heads = ["ranks", "do", "up to", "which"];
    frame.render_widget(table(rows.collect(), &heads, &widths, panel(format!("Ranks of {} ", job.job), false)), area);
}

fn bottom(state: &TopState) -> Line<'_> {
    match (&state.doubt, &state.line) {
        (Some(doubt), _) => Line::styled(&*doubt.question, Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD)),
        (None, Some(line)) => Line::from(vec![Span::raw(&**line), Span::styled(format!("   {KEYS}"), quiet())]),
        (None, None) => Line::styled(KEYS, quiet()),
    }
}

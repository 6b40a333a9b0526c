package dev.fieldmesh.core.experiment

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.ControllerApi
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Seeker
import dev.fieldmesh.core.agent.Shelf
import dev.fieldmesh.core.agent.meets
import dev.fieldmesh.core.wire.Choice
import dev.fieldmesh.core.wire.Run
import dev.fieldmesh.core.wire.RunRequest
import dev.fieldmesh.core.wire.WireJson
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.collectLatest
import kotlinx.coroutines.flow.distinctUntilChanged
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.receiveAsFlow
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import java.io.File
import java.time.LocalDateTime
import java.time.ZoneOffset
import java.time.format.DateTimeFormatter
import java.util.Locale

/** A file of a run that has come, and whether it is to be looked at here or handed on. */
data class Fetched(val file: File, val toOpen: Boolean)

/** What outlives the process. [controller] is written as a [Pairing] is. */
@Serializable
data class Kept(
    val controller: String? = null,
    val choice: Choice? = null,
    val opened: String? = null,
    val wishes: List<Wish> = emptyList(),
)

/**
 * An experimenter's work with the controller. What a person asked for goes on when the screen is left: a wish for a
 * run is on the shelf before it is sent, and until the controller has answered; sent twice it is one, by the run's
 * name. Called from [scope]'s one thread.
 */
class Experiment(
    private val scope: CoroutineScope,
    private val shelf: Shelf,
    private val now: () -> LocalDateTime,
    private val folder: File,
    private val seeker: Seeker? = null,
    private val connect: suspend (Pairing) -> ControllerApi,
) {
    private var api: ControllerApi? = null
    private val shown = MutableStateFlow(ExperimentState())
    private val came = Channel<Fetched>(Channel.UNLIMITED)
    private var planning: Job? = null
    private var checking: Job? = null
    private var beginning: Job? = null
    private var delivering: Job? = null
    private var listing: Job? = null
    private var fetching: Job? = null

    /** The wish that is on its way. */
    private var asking: Wish? = null

    /** When what a check found came, in seconds of the phone's clock. */
    private var foundS = 0L

    /** The last refusal that was shown for a wish that is asked for again. */
    private var postponed: AgentException? = null

    /** How many follow the controller: what they hear of it is what its link is. */
    private var followers = 0

    val state: StateFlow<ExperimentState> = shown.asStateFlow()

    /** The controller that this phone is an experimenter's of. */
    val pairing: Pairing? get() = shown.value.controller

    /** Files that have come; each is told once. */
    val fetched: Flow<Fetched> = came.receiveAsFlow()

    init {
        val kept = load()
        kept.controller?.let(Pairing::parse)?.let { at ->
            begin(at)
            shown.update { it.copy(choice = kept.choice, opened = kept.opened, wishes = kept.wishes) }
            deliver()
        }
    }

    /** Takes the controller that a code has told; null ends the role. */
    fun pair(with: Pairing?) {
        if (with != null && with == pairing) return shown.update { it.copy(link = ControllerLink.CONNECTING) }
        listOf(planning, checking, beginning, delivering, listing, fetching).forEach { it?.cancel() }
        shown.value = ExperimentState()
        api = null
        asking = null
        with?.let(::begin)
        save()
    }

    private fun begin(with: Pairing) = shown.update { it.copy(controller = with) }

    /** Follows campaigns and runs, for as long as somebody looks at them. */
    suspend fun watch() = shown.map { it.controller }.distinctUntilChanged().collectLatest {
        if (it == null) return@collectLatest
        followers++
        try {
            coroutineScope {
                launch { listAgain() }
                launch { age() }
                launch { seeker?.follow(it, shown.map { s -> s.link in AWAY }, ::shows, ::moved) }
                follow()
            }
        } finally {
            followers--
        }
    }

    private suspend fun shows(at: Pairing) = meets { connect(at).runs(null, 0) }

    private fun moved(to: Pairing) {
        api = null
        begin(to)
        save()
    }

    /** A rejected attempt was logged, too, and changes nothing that the list of runs shows. */
    private suspend fun listAgain() {
        while (true) {
            delay(LIST_MS)
            if (shown.value.run?.phase == "running" && listing?.isActive != true) list()
        }
    }

    /** A person who comes back sees at once that a check is of long ago. */
    private suspend fun age() {
        while (true) {
            ageCheck()
            delay(AGE_MS)
        }
    }

    private fun ageCheck() {
        if (shown.value.preflight != null && isOld(foundS)) shown.update { it.copy(isCheckOld = true) }
    }

    private suspend fun follow() {
        var known: ULong? = null
        var wait = FIRST_RETRY_MS
        if (planning?.isActive != true && shown.value.planned == null) plan()
        while (true) {
            try {
                val campaigns = call(isFollower = true) { campaigns() }.campaigns
                shown.update { it.copy(campaigns = campaigns) }
                val runs = call(isFollower = true) { runs(known, LOOK_MS) }
                known = runs.version
                take(runs.runs)
                wait = FIRST_RETRY_MS
            } catch (e: AgentException) {
                known = null
                if (isUntold(e)) shown.update { it.copy(refused = e) }
                delay(wait)
                wait = (wait * 2).coerceAtMost(LAST_RETRY_MS)
            }
        }
    }

    /** Looks at a campaign, or at none; one that [begins] is checked, and started if nothing is in the way. */
    fun choose(campaign: String?, begins: Boolean = false) {
        want(campaign?.let { Choice(it) })
        if (begins) begin()
    }

    /** With another scale, speeds and repetitions are again as the campaign has them. */
    fun scale(name: String?) = change { Choice(campaign, name) }

    /** Drives at a speed, or does not; one speed remains. */
    fun speed(mps: Double, on: Boolean) {
        val chosen = shown.value.speeds.filterValues { it }.keys
        val wanted = if (on) chosen + mps else chosen - mps
        val own = shown.value.own?.speedsMps?.toSet()
        if (wanted.isNotEmpty()) change { copy(speedsMps = wanted.sorted().takeIf { wanted != own }) }
    }

    fun repetitions(n: Int) = change { copy(repetitions = n.coerceIn(1, REPETITIONS_MAX)) }

    private fun change(how: Choice.() -> Choice) = shown.value.choice?.let { want(it.how()) } ?: Unit

    private fun want(choice: Choice?) {
        val before = shown.value
        beginning?.cancel()
        if (choice == before.choice) return
        checking?.cancel()
        val isSameScale = choice?.campaign == before.choice?.campaign && choice?.scale == before.choice?.scale
        shown.update {
            it.copy(
                choice = choice,
                planned = null,
                own = it.own.takeIf { isSameScale },
                isChecking = false,
                preflight = null,
                refused = null,
            )
        }
        save()
        plan()
    }

    private fun plan() {
        planning?.cancel()
        val choice = shown.value.choice ?: return
        planning = ask {
            delay(SETTLES_MS) // a person is still touching
            val planned = insist { plan(choice) }
            val isOwn = choice.speedsMps == null && choice.repetitions == null
            shown.update { it.copy(planned = planned, own = if (isOwn) planned else it.own) }
        }
    }

    /** Has every node checked for the present choice. */
    fun check() {
        val choice = shown.value.choice ?: return
        checking?.cancel()
        shown.update { it.copy(isChecking = true, preflight = null, refused = null) }
        checking = ask {
            try {
                val found = insist { preflight(choice) }
                foundS = seconds()
                shown.update { it.copy(preflight = found, isCheckOld = false) }
            } finally {
                if (checking === currentCoroutineContext()[Job]) shown.update { it.copy(isChecking = false) }
            }
        }
    }

    private fun begin() {
        check()
        val choice = shown.value.choice
        val wishedS = seconds() // a check waits for a controller that is away
        beginning = scope.launch {
            state.first { !it.isChecking && (it.planned != null || it.refused != null) }
            if (shown.value.choice == choice) start(wishedS)
        }
    }

    /** Starts the present choice. The run's name is made here, and stays until the controller has answered. */
    fun start() = start(seconds())

    private fun start(wishedS: Long) {
        ageCheck()
        val state = shown.value
        if (state.hindrance != null) return
        val choice = state.choice ?: return
        wish(Wish(Steer.START, nameFor(choice, state.runs.orEmpty()), choice, wishedS))
    }

    private fun nameFor(choice: Choice, runs: List<Run>): String {
        val campaign = choice.campaign.lowercase(Locale.ROOT).replace(Regex("[^a-z0-9]+"), "-").take(CAMPAIGN_MOST)
        val plain = "${campaign.trim('-')}-${now().format(STAMP)}"
        val names = sequenceOf(plain) + generateSequence(2) { it + 1 }.map { "$plain-$it" }
        return names.first { name -> runs.none { it.name == name } }
    }

    /** Takes back what the controller has not answered of a run. It may have heard it: the runs tell then. */
    fun takeBack(run: String) {
        val wish = shown.value.wishes.find { it.run == run } ?: return
        drop(wish)
        deliver()
    }

    /** Pauses, resumes or ends a run. */
    fun steer(run: String, how: Steer) = wish(Wish(how, run, wishedS = seconds()))

    private fun seconds() = now().toEpochSecond(ZoneOffset.UTC)

    /** The newest wish for a run stands. */
    private fun wish(new: Wish) {
        shown.update { s -> s.copy(wishes = s.wishes.filter { it.run != new.run } + new, refused = null) }
        save()
        if (asking == null || asking?.run == new.run) deliver()
    }

    /** A wish that the controller cannot grant yet goes behind the others. */
    private fun deliver() {
        delivering?.cancel()
        delivering = ask {
            val later = mutableSetOf<Wish>()
            var wait = FIRST_RETRY_MS
            while (shown.value.wishes.isNotEmpty()) {
                val wish = shown.value.wishes.find { it !in later }
                if (wish != null) {
                    if (!deliver(wish)) later += wish
                    continue
                }
                delay(wait)
                wait = (wait * 2).coerceAtMost(LONGEST_MS)
                later.clear()
            }
        }
    }

    /** False where it has to be asked for again. */
    private suspend fun deliver(wish: Wish): Boolean {
        asking = wish
        try {
            val run = insist(AgentException::isAway) {
                checkAge(wish)
                grant(wish)
            }
            drop(wish)
            took(wish, run)
        } catch (e: AgentException) {
            val isLater = passes(e)
            if (!isLater) drop(wish)
            if (isLater) postponed = e
            shown.update { it.copy(refused = e) }
            return !isLater
        } finally {
            if (asking === wish) asking = null
        }
        return true
    }

    private suspend fun ControllerApi.grant(wish: Wish): Run = when (wish.steer) {
        Steer.START -> start(RunRequest(wish.run, checkNotNull(wish.choice)))
        Steer.PAUSE, Steer.RESUME, Steer.END -> steer(wish.run, wish.steer.name.lowercase(Locale.ROOT))
    }

    /** Nobody who has gone away has nodes begin. */
    private fun checkAge(wish: Wish) {
        val isTooOld = wish.steer in BEGINS && (wish.wishedS == null || isOld(wish.wishedS))
        if (isTooOld) throw AgentException.TooOld(wish.run, isStart = wish.steer == Steer.START)
    }

    /** The phone's clock may have been set since. */
    private fun isOld(sinceS: Long) = seconds() - sinceS !in 0..OLD_S

    private fun took(wish: Wish, run: Run) {
        val runs = shown.value.runs.orEmpty()
        val isNew = runs.none { it.name == run.name }
        take(if (isNew) listOf(run) + runs else runs.map { if (it.name == run.name) run else it })
        if (wish.steer in HALTS && run.name == shown.value.opened) list() // what was recorded last has come
        if (wish.steer != Steer.START || shown.value.choice != wish.choice) return
        want(null)
        open(run.name)
    }

    private fun drop(wish: Wish) {
        shown.update { s -> s.copy(wishes = s.wishes - wish, refused = s.refused.takeIf { it !== postponed }) }
        save()
    }

    private fun take(runs: List<Run>) {
        val before = shown.value.run
        shown.update { it.copy(runs = runs) }
        val newest = shown.value.run
        if (newest?.accepted != before?.accepted || newest?.phase != before?.phase) list()
    }

    /** Looks at a run, or at none. */
    fun open(run: String?) {
        fetching?.cancel()
        shown.update { it.copy(opened = run, files = emptyList(), places = null, fetching = null, refused = null) }
        save()
        list()
    }

    /** Goes one step back. */
    fun back() = if (shown.value.opened != null) open(null) else choose(null)

    private fun list() {
        listing?.cancel()
        val run = shown.value.run?.name ?: return
        listing = ask {
            val files = insist { files(run) }.files.filter { PLAIN.matches(it.name) }
            shown.update { it.copy(files = files) }
            if (files.isEmpty()) return@ask
            val places = insist { places(run) }
            shown.update { it.copy(places = places) }
        }
    }

    /** Fetches a file of the run that is looked at, to be opened here or handed to another app. */
    fun fetch(file: String, toOpen: Boolean) {
        val run = shown.value.run?.name ?: return
        if (!PLAIN.matches(run) || !PLAIN.matches(file)) return
        fetching?.cancel()
        shown.update { it.copy(fetching = file, refused = null) }
        fetching = ask {
            try {
                val to = File(File(folder, run), file)
                insist { fetch(run, file, to) }
                came.send(Fetched(to, toOpen))
            } finally {
                if (fetching === currentCoroutineContext()[Job]) shown.update { it.copy(fetching = null) }
            }
        }
    }

    /** Does what a person asked for, and shows why it is not done. */
    private fun ask(work: suspend () -> Unit): Job = scope.launch {
        try {
            work()
        } catch (e: AgentException) {
            shown.update { it.copy(refused = e) }
        }
    }

    /** Asks until the controller answers, whatever it answers. */
    private suspend fun <T> insist(
        goesOn: (AgentException) -> Boolean = ::passes,
        what: suspend ControllerApi.() -> T,
    ): T {
        var wait = FIRST_RETRY_MS
        while (true) {
            try {
                return call(what = what)
            } catch (e: AgentException) {
                if (!goesOn(e)) throw e
            }
            delay(FIRST_RETRY_MS)
            // Whoever hears the controller first wakes the others.
            val isOut = shown.value.link != ControllerLink.UP
            if (isOut) withTimeoutOrNull(wait) { state.first { it.link == ControllerLink.UP } } else delay(wait)
            wait = (wait * 2).coerceAtMost(LONGEST_MS)
        }
    }

    /** Whether the link's state does not say it. */
    private fun isUntold(e: AgentException) = e is AgentException.NoKey || shown.value.link == ControllerLink.UP

    private fun passes(e: AgentException) =
        e.isAway || e is AgentException.NoKey || e is AgentException.Refused && e.error.code in AGAIN

    private suspend fun <T> call(isFollower: Boolean = false, what: suspend ControllerApi.() -> T): T = try {
        val answer = connected().what()
        shown.update { it.copy(link = ControllerLink.UP) }
        answer
    } catch (e: AgentException) {
        val before = shown.value.link
        val link = when (e) {
            // Somebody who follows hears of it, too: a single call may only have taken too long.
            is AgentException.Unreachable -> if (isFollower || followers == 0) ControllerLink.LOST else before
            is AgentException.WrongNode -> ControllerLink.WRONG_CONTROLLER
            is AgentException.NotPaired -> ControllerLink.NOT_EXPERIMENTER
            is AgentException.Refused, is AgentException.BadAnswer, is AgentException.Unstored -> ControllerLink.UP
            is AgentException.NoKey, is AgentException.TooOld -> before
        }
        shown.update { it.copy(link = link) }
        throw e
    }

    private suspend fun connected(): ControllerApi {
        api?.let { return it }
        val at = checkNotNull(pairing) { "no controller is paired" }
        return connect(at).also { if (pairing == at) api = it }
    }

    private fun save() {
        val s = shown.value
        val kept = Kept(s.controller?.toString(), s.choice, s.opened, s.wishes)
        shelf.save(WireJson.encodeToString(Kept.serializer(), kept))
    }

    private fun load(): Kept = try {
        shelf.load()?.let { WireJson.decodeFromString(Kept.serializer(), it) }
    } catch (_: SerializationException) {
        null
    } ?: Kept()

    private companion object {
        val STAMP: DateTimeFormatter = DateTimeFormatter.ofPattern("MMdd-HHmmss", Locale.ROOT)

        /** What a name of a file or a run may be: it becomes a path here. */
        val PLAIN = Regex("[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

        /** A run's name has 64 letters at most (protocols/wire). */
        const val CAMPAIGN_MOST = 48

        /** Codes of refusals that pass by themselves. */
        val AGAIN = setOf("busy", "unavailable", "too_slow")

        /** While nobody answers who has the controller's key. */
        val AWAY = setOf(ControllerLink.LOST, ControllerLink.WRONG_CONTROLLER)

        /** What has nodes begin. */
        val BEGINS = setOf(Steer.START, Steer.RESUME)

        /** How old that may be, and the check before it; the screen's words have it, too. */
        const val OLD_S = 600L
        val HALTS = setOf(Steer.PAUSE, Steer.END)

        const val REPETITIONS_MAX = 100
        const val SETTLES_MS = 300L
        const val LOOK_MS = 25_000L
        const val LIST_MS = 60_000L
        const val AGE_MS = 10_000L
        const val FIRST_RETRY_MS = 250L
        const val LAST_RETRY_MS = 4000L
        const val LONGEST_MS = 60_000L
    }
}

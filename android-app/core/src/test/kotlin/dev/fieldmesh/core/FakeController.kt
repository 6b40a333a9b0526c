package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.ControllerApi
import dev.fieldmesh.core.agent.Shelf
import dev.fieldmesh.core.wire.Campaign
import dev.fieldmesh.core.wire.Campaigns
import dev.fieldmesh.core.wire.Choice
import dev.fieldmesh.core.wire.Need
import dev.fieldmesh.core.wire.Places
import dev.fieldmesh.core.wire.Planned
import dev.fieldmesh.core.wire.Preflight
import dev.fieldmesh.core.wire.Run
import dev.fieldmesh.core.wire.RunFile
import dev.fieldmesh.core.wire.RunFiles
import dev.fieldmesh.core.wire.RunRequest
import dev.fieldmesh.core.wire.Runs
import dev.fieldmesh.core.wire.Scale
import dev.fieldmesh.core.wire.WireError
import kotlinx.coroutines.delay
import java.io.File
import java.io.IOException

fun sampleRun(name: String, phase: String = "running") = Run(name, "velocity", "road", phase, 8, 0, 0)

/** Keeps its text as long as a test. */
class MemoryShelf : Shelf {
    private var text: String? = null

    override fun load() = text

    override fun save(text: String) {
        this.text = text
    }
}

/** A controller as the app meets it; out of reach, or with answers that are lost, where a test wants it. */
class FakeController : ControllerApi {
    var isAway = false
    var losesAnswers = false
    var refusal: AgentException? = null
    var planFault: WireError? = null
    var startFault: WireError? = null

    /** Runs that cannot be steered for now. */
    var busy = emptySet<String>()
    var steerTimesOut = false
    var hasRangeTest = false
    var fetchFault: AgentException? = null
    var runs = emptyList<Run>()
    var version = 1uL
    var needs = listOf(Need("alpha", "radio", "met", "wlan0"))
    var names = listOf("report.html")
    var places = Places(stretches = emptyList(), way = emptyList())
    val asked = mutableListOf<String>()
    val started = mutableListOf<RunRequest>()
    val steered = mutableListOf<String>()

    private fun answer(what: String) {
        if (isAway) throw AgentException.Unreachable(IOException("no route"))
        refusal?.let { throw it }
        asked += what
    }

    override suspend fun campaigns(): Campaigns {
        answer("campaigns")
        val velocity = Campaign(
            "velocity",
            "Impact of velocity",
            "Does it fall?",
            listOf(Scale("smoke", "One of each.")),
            listOf(2.8, 5.6),
            2,
            listOf("alpha", "bravo"),
        )
        val grid = Campaign("grid", "A grid of 36 nodes", "", emptyList(), nodes = listOf("a"), missing = listOf("a"))
        val nodes = listOf("alpha", "bravo")
        val range = Campaign("range-test", "How far on this road", "", emptyList(), nodes = nodes, rangeTest = true)
        return Campaigns(listOf(velocity, grid) + listOfNotNull(range.takeIf { hasRangeTest }))
    }

    override suspend fun plan(choice: Choice): Planned {
        answer("plan")
        planFault?.let { throw AgentException.Refused(it) }
        val speeds = choice.speedsMps ?: listOf(2.8, 5.6)
        val repetitions = choice.repetitions ?: 2
        val trials = speeds.size * repetitions * 2
        return Planned(trials, trials * 90.0, ROAD_M, speeds, repetitions)
    }

    override suspend fun preflight(choice: Choice): Preflight {
        answer("preflight")
        return Preflight(needs.none { it.outcome == "unmet" }, needs)
    }

    override suspend fun start(request: RunRequest): Run {
        answer("start")
        started += request
        startFault?.let { throw AgentException.Refused(it) }
        if (runs.none { it.name == request.name }) {
            runs = listOf(sampleRun(request.name)) + runs
            version++
        }
        if (losesAnswers) throw AgentException.Unreachable(IOException("connection reset"))
        return runs.first { it.name == request.name }
    }

    override suspend fun runs(known: ULong?, waitMs: Long): Runs {
        answer("runs")
        if (known == version) delay(waitMs)
        if (isAway || losesAnswers) throw AgentException.Unreachable(IOException("connection reset"))
        return Runs(version, runs)
    }

    override suspend fun steer(run: String, how: String): Run {
        answer(how)
        if (steerTimesOut) throw AgentException.Unreachable(IOException("timeout"))
        if (run in busy) throw AgentException.Refused(WireError("unavailable", "run $run is still at it"))
        steered += "$how $run"
        runs = runs.map { if (it.name == run && it.phase != "ended") it.copy(phase = PHASES.getValue(how)) else it }
        version++
        return runs.first { it.name == run }
    }

    override suspend fun places(run: String): Places {
        answer("places")
        return places
    }

    override suspend fun files(run: String): RunFiles {
        answer("files")
        return RunFiles(names.map { RunFile(it, 1_234_567) })
    }

    override suspend fun fetch(run: String, file: String, to: File) {
        answer("fetch")
        fetchFault?.let { throw it }
        to.parentFile.mkdirs()
        to.writeText("$file of $run")
    }

    private companion object {
        /** The trials lie on one road: their number does not change its length. */
        const val ROAD_M = 569.0
        val PHASES = mapOf("pause" to "paused", "resume" to "running", "end" to "ended")
    }
}

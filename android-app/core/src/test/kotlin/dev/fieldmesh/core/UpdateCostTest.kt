package dev.fieldmesh.core

import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.app.Instrument
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.wire.Live
import dev.fieldmesh.core.wire.PushedFix
import dev.fieldmesh.core.wire.WireJson
import kotlin.test.Test
import kotlin.test.assertEquals

/**
 * What one fix costs on its way to the screens' state and into the body of its
 * push, in the midst of a campaign of 300 trials. Printed, not judged: the
 * machine may be busy. The goal is 1 ms.
 */
class UpdateCostTest {
    private var now = 0L
    private val instrument = Instrument({ now }, { _, _ -> })

    @Test
    fun `the cost of a fix`() {
        instrument.heard(Heard.Plan(schedule(trials = List(300) { trial(it + 1) })))
        instrument.heard(
            Heard.View(
                view(
                    "armed",
                    verdicts = List(150) {
                        verdict("accepted", it + 1)
                    },
                    live = Live(),
                ),
            ),
        )
        repeat(WARM) { one(it) }
        val costs = LongArray(MEASURED) { n ->
            val start = System.nanoTime()
            one(n)
            System.nanoTime() - start
        }.sorted()
        println(
            "a fix, to state and push: median %.3f ms, p99 %.3f ms; goal 1 ms".format(
                costs[MEASURED / 2] / 1e6,
                costs[MEASURED * 99 / 100] / 1e6,
            ),
        )
        assertEquals(13.9, instrument.state.value.drive.speedMps!!, 1e-6)
    }

    private fun one(n: Int): Int {
        now += 100_000_000
        val fix =
            Fix(
                now,
                3,
                utcMs = n * 100L,
                latDeg = -26.682,
                lonDeg = 27.092 + n % 1000 * 1e-4,
                speedMps = 13.9,
                trackDeg = 90.0,
            )
        instrument.fix(fix)
        return WireJson.encodeToString(PushedFix.serializer(), fix.toPush(now)).length
    }

    private companion object {
        const val WARM = 3000
        const val MEASURED = 3000
    }
}

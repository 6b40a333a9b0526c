package dev.fieldmesh.core.app

import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.Trial
import dev.fieldmesh.core.wire.Verdict

/** How a trial stands. */
enum class Standing { OPEN, NEXT, PRESENT, ACCEPTED, REJECTED, FAILED, INTERRUPTED }

/**
 * One line of the campaign. [attempt] is the newest attempt that the node knows of, under way or over; null before the
 * first. [newest] is the outcome of the newest that is over, and [attempts] is how many are.
 */
data class TrialRow(
    val number: Int,
    val factors: Map<String, String>,
    /** The factors whose levels are the car's speeds in m/s. */
    val speedFactors: Set<String>,
    val standing: Standing,
    val attempt: Int?,
    val attempts: Int,
    val newest: Verdict?,
    /** Whether it may have another attempt. */
    val isOpen: Boolean,
)

/** What is done, what comes next and what was rejected, and why. */
data class CampaignState(
    val campaign: String,
    val run: String,
    val rows: List<TrialRow>,
    /** Rough: driving there and back in all trials that are open. */
    val leftS: Double,
    val leftM: Double,
    /** The run was paused or ended with trials open: no trial is the next until a controller takes it up. */
    val isStopped: Boolean,
) {
    val accepted get() = rows.count { it.standing == Standing.ACCEPTED }

    /** How many of [accepted] a node has judged by itself: the controller may find otherwise. */
    val provisional get() = rows.count { it.standing == Standing.ACCEPTED && it.newest?.isFinal == false }
    val next get() = rows.find { it.standing == Standing.PRESENT } ?: rows.find { it.standing == Standing.NEXT }

    /** Nothing is left to drive. */
    val isOver get() = next == null && !isStopped

    companion object {
        fun of(schedule: Schedule, view: CampaignView): CampaignState {
            val verdicts = view.trials.associate { it.number to it.attempts }
            val underWay = view.current?.trial.takeIf { view.state in setOf("armed", "running", "restoring") }
            val closed = schedule.trials.filter { t ->
                isClosed(verdicts[t.number].orEmpty(), schedule.attemptsMax)
            }.map { it.number }.toSet()
            val open = schedule.trials.filter { it.number !in closed }
            val isStopped = view.ended && open.isNotEmpty()
            val next = open.firstOrNull { it.number != underWay }?.number.takeIf { !isStopped }
            val speedFactors = speedFactors(schedule.trials)
            val rows = schedule.trials.map { t ->
                val attempts = verdicts[t.number].orEmpty()
                val newest = attempts.maxByOrNull { it.attempt }
                val standing = when (t.number) {
                    underWay -> Standing.PRESENT
                    next -> Standing.NEXT
                    else -> outcome(newest)
                }
                val present = view.current?.takeIf { it.trial == t.number }?.attempt
                val attempt = listOfNotNull(present, newest?.attempt).maxOrNull()
                val isOpen = t.number !in closed
                TrialRow(t.number, t.factors, speedFactors, standing, attempt, attempts.size, newest, isOpen)
            }
            return CampaignState(
                schedule.campaign,
                schedule.run,
                rows,
                open.sumOf {
                    it.driveS()
                },
                open.sumOf { it.driveM() },
                isStopped,
            )
        }

        /** Those that have the car's speed as their level in every trial; one trial may have it by chance. */
        private fun speedFactors(trials: List<Trial>): Set<String> {
            fun isSpeed(factor: String) = trials.all {
                it.speedMps != null && it.factors[factor]?.toDoubleOrNull() == it.speedMps
            }
            return trials.firstOrNull()?.factors?.keys.orEmpty().filter(::isSpeed).toSet()
        }

        /**
         * As the controller goes on (internal/verdict, Next, with whose cases a test holds this to it): interrupted
         * attempts use up none of a trial's, one without a verdict does, and a person may ask for more.
         */
        private fun isClosed(attempts: List<Verdict>, most: Int): Boolean {
            val s = Uses(most)
            attempts.sortedBy { it.attempt }.forEach(s::count)
            val spent = s.used >= s.allowed || s.interrupted >= INTERRUPTIONS_MAX || s.next > ATTEMPTS_MAX
            return s.skipped || spent || attempts.any { it.outcome == "accepted" }
        }

        /** What a trial's attempts have used up of it. */
        private class Uses(private val most: Int) {
            var next = 1
            var used = 0
            var allowed = most
            var interrupted = 0
            var skipped = false

            fun count(a: Verdict) {
                used += maxOf(a.attempt - next, 0)
                next = maxOf(next, a.attempt + 1)
                if (a.outcome == "interrupted") interrupted++ else used++
                when (a.word?.decision) {
                    "skip" -> skipped = true
                    "repeat" -> {
                        allowed = maxOf(allowed, used + 1)
                        interrupted = minOf(interrupted, INTERRUPTIONS_MAX - 1)
                    }
                    "retry" -> {
                        allowed = used + most
                        interrupted = 0
                        skipped = false
                    }
                }
            }
        }

        private const val INTERRUPTIONS_MAX = 20
        private const val ATTEMPTS_MAX = 1000

        private fun outcome(newest: Verdict?) = when (newest?.outcome) {
            null -> Standing.OPEN
            "accepted" -> Standing.ACCEPTED
            "rejected" -> Standing.REJECTED
            "interrupted" -> Standing.INTERRUPTED
            else -> Standing.FAILED
        }
    }
}

/** Getting up to speed, the window, braking, and the same way back. */
private fun Trial.driveM(): Double {
    val v = speedMps ?: return 0.0
    val up = if (course.accelMps2 > 0) v * v / (2 * course.accelMps2) else 0.0
    val down = if (course.brakeMps2 > 0) v * v / (2 * course.brakeMps2) else 0.0
    return 2 * (up + v * durationS + down)
}

private fun Trial.driveS(): Double {
    val v = speedMps?.takeIf { it > 0 } ?: return durationS + TURN_S
    return driveM() / v + TURN_S
}

/** Stopping, turning round and being armed again; a guess, for an estimate that says "about". */
private const val TURN_S = 30.0
